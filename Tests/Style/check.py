#!/usr/bin/env python3
"""The rules of STYLE.md that a machine can check.

check.py          print findings as file:line: message; exit status 1 if there are any
check.py --fix    first format the Swift sources with `swift format`

A finding whose message begins with "warning:" is the guess of a heuristic. It does not fail the check.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES_MAX = 500
# The formatter breaks code at this column, and leaves comments as they are.
COLUMNS_MAX = 120
# Applications copy the Python client, so it is one file.
LINES_MAX_OF = {"Examples/python/causeway.py": 750}

# Modules of the Swift toolchain that any module may import.
SWIFT = {"Synchronization"}
# The library for applications is used without the firmware. These of its files may import the system's C library.
PLATFORM = {f"Sources/{name}.swift": {"Glibc", "Musl", "Darwin"}
            for name in ("Causeway/Platform", "TransferFiles/Files", "TransferFiles/ChildProcess", "TransferFiles/DiskQuota")}

SOURCE_SUFFIXES = {".swift", ".c", ".h", ".py", ".sh"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".conf", ".service", ".json", ".yml", ".yaml", ""}

# The words in these patterns are split, so that this file does not match its own patterns.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
FOREIGN = [
    (re.compile(r"(?<![\w.])/wo" r"rk/"), "a path of one machine"),
    (re.compile(r"\.\./sha" r"red\b"), "a path outside the project"),
    (re.compile(r"\b(arti" r"factory|pypi\.python|deb\.deb" r"ian\.org|github\.com/[\w-]+/(releases|archive))"),
     "a package server's name: use whatever the host is set to"),
]

# The fuzzers' inputs are arbitrary bytes, so no rule applies to them.
INPUTS = "Tests/Fuzz/corpus/"

findings = 0


def report(path, line, message, warning=False):
    global findings
    findings += 0 if warning else 1
    print(f"{path.relative_to(ROOT)}:{line}: {'warning: ' if warning else ''}{message}")


def tracked_files():
    """The files that git tracks or would add. Build products and the fuzzers' inputs are left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file() and not name.startswith(INPUTS)]


def check_text(path, lines):
    most = LINES_MAX_OF.get(str(path.relative_to(ROOT)), LINES_MAX)
    if path.suffix in SOURCE_SUFFIXES and len(lines) > most:
        report(path, most + 1, f"more than {most} lines: split the file by subject")
    for number, line in enumerate(lines, 1):
        if path.suffix in SOURCE_SUFFIXES:
            if "\t" in line and path.relative_to(ROOT).parts[0] in ("Sources", "Tests"):
                report(path, number, "tab: indent by spaces")
            if path.suffix == ".swift" and len(line) > COLUMNS_MAX and line.lstrip().startswith("//"):
                report(path, number, f"a comment beyond {COLUMNS_MAX} columns")
            if UNFINISHED.search(line):
                report(path, number, "a note of unfinished work: finish it, or describe it in the papers")
        if line != line.rstrip():
            report(path, number, "space at the end of the line")
        for pattern, what in FOREIGN:
            if pattern.search(line):
                report(path, number, f"{what} does not belong here")


IMPORT = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?"
                    r"import\s+(?:(?:struct|class|enum|protocol|func|var|typealias)\s+)?(\w+)")


TARGET = re.compile(r'\b(core|rim|support|tests|target|testTarget|executableTarget)\(\s*(?:name: )?"(\w+)"'
                    r'(?:,\s*(?:dependencies: )?(?:embedded \? )?\[(.*?)\])?', re.DOTALL)


def check_modules():
    """Check that a module imports only modules that it declares in Package.swift, and a core module only core modules. SwiftPM does
    not check this: it finds an undeclared module if another target has caused it to be built."""
    package = ROOT / "Package.swift"
    text = package.read_text(encoding="utf-8")
    found = list(TARGET.finditer(text, text.index("let package")))
    modules = {match[2] for match in found}
    core = [match[2] for match in found if match[1] == "core"]
    for match, after in zip(found, [*(each.start() for each in found[1:]), len(text)]):
        kind, name, declared = match[1], match[2], set(re.findall(r'"(\w+)"', match[3] or ""))
        line = text.count("\n", 0, match.start()) + 1
        for other in sorted(declared - modules):
            report(package, line, f"{name} declares {other}, which is no target")
        if kind == "core" and not declared <= set(core[:core.index(name)]):
            report(package, line, f"{name} is a core module: it imports only the core modules above it")
        path = re.search(r'path: "([^"]+)"', text[match.start():after])
        folder = ROOT / (path[1] if path else f"Tests/{name}" if kind in ("support", "tests", "testTarget") else f"Sources/{name}")
        for file in sorted(folder.rglob("*.swift")):
            platform = PLATFORM.get(str(file.relative_to(ROOT)), set())
            for number, source in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                imported = IMPORT.match(source)
                if not imported or imported[1] in declared | SWIFT | platform:
                    continue
                if imported[1] in modules:
                    report(file, number, f"{name} does not declare {imported[1]} in Package.swift")
                elif folder.is_relative_to(ROOT / "Sources"):
                    report(file, number, f"{imported[1]} is no module of Causeway, and Embedded Swift has neither Foundation nor Glibc")
    for folder in (ROOT / "Sources").iterdir():
        if folder.name not in modules:
            report(package, 1, f"Sources/{folder.name} is no target")


PUBLIC_TYPE = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*public\s+(?:\w+\s+)*?(?:struct|class|enum|protocol)\s+\w+")


def check_documentation(path, lines):
    """Check that every public type has a doc comment. Reviewers decide whether its members need one."""
    covered = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("///"):
            covered = True
        elif not text.startswith("@"):
            if PUBLIC_TYPE.match(line) and not covered:
                report(path, number, "public type without a doc comment")
            covered = False


# Output for people may contain untrusted text. TextBuilder removes control sequences from untrusted text.
OUTPUT = re.compile(r"\b(?:CSystem\.)?d?(?:write|printf|puts)\((?:STDOUT_FILENO|STDERR_FILENO|[12]),|\bprint\(|\bfputs\(")
OUTPUT_ALLOWED = {"Sources/Text/Print.swift", "Sources/Log/Panic.swift"}


def check_output(path, lines):
    if str(path.relative_to(ROOT)) in OUTPUT_ALLOWED:
        return
    for number, line in enumerate(lines, 1):
        if OUTPUT.search(line) and not line.strip().startswith("//"):
            report(path, number, "writes to a terminal directly: use TextBuilder, or Output and printError of CommandLine")


def check_default(path, lines):
    """Warn about `default:` beside cases like `.name`. The enum may be one of this project, whose cases should be named."""
    for number, line in enumerate(lines, 1):
        match = re.match(r"^(\s*)default:", line)
        if not match:
            continue
        margin = match.group(1)
        for above in reversed(lines[:number - 1]):
            if above.startswith(margin + "case "):
                if above.startswith(margin + "case ."):
                    report(path, number, "default: over an enum? name its cases", warning=True)
                break
            if above.strip() and len(above) - len(above.lstrip()) < len(margin):
                break


BYTES = re.compile(r"InlineArray<\w+, UInt8>")
INLINE_ARRAY = re.compile(r"(\w+)(?:: (?:inout )?| = )InlineArray<")


def check_inline_arrays(path, lines):
    """Check that InlineArray is used only for bytes that are written all at once. FixedArray.swift describes the defect of the
    optimiser that is the reason."""
    if path.name == "FixedArray.swift":
        return
    names = set()
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        if "InlineArray<" in BYTES.sub("", code):
            report(path, number, "InlineArray of what is no byte: take FixedArray")
        names.update(INLINE_ARRAY.findall(code))
    if not names:
        return
    change = re.compile(r"\b(?:" + "|".join(sorted(names)) + r")\[[^\]]*\](?:\.\w+)* ([-+*/&|^]|<<|>>)*=[^=]")
    for number, line in enumerate(lines, 1):
        if change.search(line.split("//")[0]):
            report(path, number, "an InlineArray whose elements are changed one by one: take FixedArray")


def check_format(swift_files):
    command = ["swift", "format", "lint", "--configuration", str(ROOT / ".swift-format")] + [str(f) for f in swift_files]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    for line in output.stderr.splitlines() + output.stdout.splitlines():
        match = re.match(r"^(/.*?):(\d+):\d+: (?:warning|error): (.*)$", line)
        if match:
            report(pathlib.Path(match.group(1)), match.group(2), match.group(3))
    if output.returncode != 0 and not output.stderr:
        sys.exit("swift format failed: is the Swift toolchain installed?")


def check_mutations():
    """Check that the text which each mutation replaces still occurs in the sources. Otherwise the mutation proves nothing."""
    sys.path.insert(0, str(ROOT / "Tests/Mutation"))
    from mutations import ROWS
    for row in ROWS:
        source = ROOT / row.file
        if not source.is_file() or row.before not in source.read_text(encoding="utf-8"):
            report(ROOT / "Tests/Mutation/mutations.py", 1, f"“{row.what}”: {row.file} has no such text any more")


# Words that readers of comments and papers had to read twice, and the words to use instead.
WORDS = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in [
    (r"\bnone any " r"more\b|(?<!there )\bis none\b", "“no longer” or “there is no”"),
    (r"\bas long as it is " r"there\b", "“while it exists”"),
    (r"\bby its own " r"word\b", "“according to the peer”"),
    (r"\bstands? " r"still\b", "“stalls” or “stops reading”"),
    (r"\bwho" r"ever\b", "the subject: “a peer that”"),
    (r"\ban" r"ew\b", "“again”"),
    (r"\botherwise " r"than\b", "“by other means than”"),
    (r"\b(?:is|are|was|were) " r"told\b", "“is notified” or “receives”"),
    (r"\b(?:it|node|peer|box|end|link|member|neighbour) (?:tells|hears|says)\b", "“reports”, “receives”, “sends”"),
]]
# A sentence must begin with its subject, and not with one of these words.
OPENING = re.compile(r"(?:^|[.:;]\s+)(Of|Who|Who" r"ever|What|So many|As its word)\s[a-z]")
PROSE = {".swift": r"(?:^|\s)//+\s?(.*)", ".c": r"(?:^|\s)(?:///?|\*)\s(.*)", ".h": r"(?:^|\s)(?:///?|\*)\s(.*)",
         ".py": r"(?:^|\s)#\s(.*)", ".sh": r"(?:^|\s)#\s(.*)", ".conf": r"(?:^|\s)#\s(.*)", ".md": r"^(?!#|    |\||<)(.*)"}
QUOTED = re.compile(r"`[^`]*`|“[^”]*”|\"[^\"]*\"")


def check_words(path, lines):
    prose = re.compile(PROSE[path.suffix])
    is_sample = False
    for number, line in enumerate(lines, 1):
        if path.suffix == ".md" and line.lstrip().startswith("```"):
            is_sample = not is_sample
        match = None if is_sample else prose.search(line)
        if not match:
            continue
        text = QUOTED.sub("", match[1].lstrip("-* "))
        opening = OPENING.search(text)
        if opening and not text.rstrip().endswith("?"):
            report(path, number, f"a sentence that begins with “{opening[1]}”: begin with its subject")
        for pattern, advice in WORDS:
            if pattern.search(text):
                report(path, number, f"“{pattern.search(text)[0]}”: write {advice}")


# A name is a sentence for people: the name of a test, of a regression of the simulator, or of a mutation.
NAMES = [re.compile(pattern) for pattern in [
    r"\b(?:func|struct|class|enum|actor|extension) `([^`]+)`", r"@(?:Suite|Test)\(\s*\"([^\"]+)\"",
    r"\b(?:Story)?Regression\(\s*(?:name: )?\"([^\"]+)\"", r"\bRow\(\s*\"([^\"]+)\"",
]]
# A name begins with its subject, and not with one of these words.
NAME_OPENING = re.compile(r"(Of|Who|Whose|Who" r"ever|What|Whatever|Where|Wherever|Whether|That|Those|There|So many|Nobody|Somebody|"
                          r"Everybody|As its word)\b", re.IGNORECASE)
# Words that only readers of the project know in names, and the words to use instead.
NAME_WORDS = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in [
    (r"\b(?:hears?|he" r"ard)\b", "“receives”"), (r"\b(?:tells?|to" r"ld)\b", "“notifies”, “reports”, “sends”"),
    (r"\b(?:says?|sa" r"id)\b", "“sends”, “states”"), (r"\btalk" r"s?\b", "“sends”, “communicates”"),
    (r"\b(?:nobody|somebody|every" r"body)\b", "the subject: “a peer”, “no node”"),
    (r"\bgives? w" r"ay\b", "“is evicted”"), (r"\bin cle" r"ar\b", "“unencrypted”"),
    (r"\b(?:former|later|new) li" r"fe\b", "“epoch”"),
]]


def check_names(path, text):
    for pattern in NAMES:
        for match in pattern.finditer(text):
            name, line = match[1], text.count("\n", 0, match.start(1)) + 1
            opening = NAME_OPENING.match(name)
            if opening:
                report(path, line, f"a name that begins with “{opening[1]}”: begin with its subject")
            for words, advice in WORDS + NAME_WORDS:
                found = words.search(name)
                if found:
                    report(path, line, f"“{found[0]}” in a name: write {advice}")


def check_targets():
    """Check that CI or `make test-all` runs every target of `make help`. A target that nothing runs could break unnoticed."""
    makefile = ROOT / "Makefile"
    rules = re.findall(r"^([a-z-]+):([^\n#]*)(?:## [^\n]*)?\n((?:\t[^\n]*\n|ifdef[^\n]*\n|else\n|endif\n)*)",
                       makefile.read_text(encoding="utf-8"), re.MULTILINE)
    called = re.compile(r"\$\(MAKE\) (?:-j \d+ --output-sync=target )?([a-z -]+)")
    calls = {name: {*first.split(), *" ".join(called.findall(recipe)).split()} for name, first, recipe in rules}
    reached, found = {"help"}, {"test-all"}
    while found:
        reached |= found
        found = {call for name in found for call in calls.get(name, ())} - reached
    for name in sorted(set(calls) - reached):
        report(makefile, 1, f"make {name}: neither CI nor make test-all runs it")


def main():
    files = tracked_files()
    # Package.swift is formatted by hand, because that file is a table.
    swift_files = [f for f in files if f.suffix == ".swift" and f.name != "Package.swift"]
    if sys.argv[1:] == ["--fix"]:
        command = ["swift", "format", "--in-place", "--configuration", str(ROOT / ".swift-format")]
        subprocess.run(command + [str(f) for f in swift_files], cwd=ROOT, check=True)
    elif sys.argv[1:]:
        sys.exit(__doc__)
    for path in files:
        if path.suffix not in TEXT_SUFFIXES:
            continue
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError:
            continue
        if lines and not lines[-1]:
            lines.pop()
        check_text(path, lines)
        if path.suffix in PROSE:
            check_words(path, lines)
        if path.is_relative_to(ROOT / "Tests") and path.suffix in (".swift", ".py"):
            check_names(path, "\n".join(lines))
        if path.suffix == ".swift":
            in_sources = path.is_relative_to(ROOT / "Sources")
            if in_sources:
                check_documentation(path, lines)
                check_output(path, lines)
            check_default(path, lines)
            check_inline_arrays(path, lines)
    check_format(swift_files)
    check_mutations()
    check_modules()
    check_targets()
    if findings:
        print(f"{findings} findings")
    sys.exit(1 if findings else 0)


main()
