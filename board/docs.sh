#!/usr/bin/env bash
# board/docs.sh: the library's reference from its comments and Sources/Causeway/Causeway.docc, into build/docs. A warning is an
# error: a link that leads nowhere, a symbol that no topic has. Nothing but the Swift toolchain is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf build/docs
mkdir -p build/docs/symbols build/docs/module
swiftc -swift-version 6 -parse-as-library -module-name Transfer -emit-module -emit-module-path build/docs/module/Transfer.swiftmodule \
  Sources/Transfer/*.swift
swiftc -swift-version 6 -parse-as-library -I build/docs/module -module-name Causeway -emit-module -emit-module-path build/docs/module/Causeway.swiftmodule \
  -emit-symbol-graph -emit-symbol-graph-dir build/docs/symbols -symbol-graph-minimum-access-level public \
  Sources/Causeway/*.swift
docc=$(dirname "$(readlink -f "$(command -v swiftc)")")/docc
"$docc" convert Sources/Causeway/Causeway.docc --additional-symbol-graph-dir build/docs/symbols \
  --fallback-display-name Causeway --fallback-bundle-identifier causeway --warnings-as-errors --output-path build/docs/Causeway
echo "build/docs/Causeway: $(find build/docs/Causeway/data -name '*.json' | wc -l) pages"
