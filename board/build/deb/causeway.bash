# Completion for bash. The commands, and the options of each, come from the program's own help.
_causeway() {
    local word=${COMP_WORDS[COMP_CWORD]} choices
    if [ "$COMP_CWORD" -eq 1 ]; then
        choices=$(causeway --help 2> /dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p')
    elif [[ $word == -* ]]; then
        choices=$(causeway "${COMP_WORDS[1]}" --help 2> /dev/null | grep -o -- '--[a-z-]*')
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -F _causeway causeway
