#!/usr/bin/env bash
# board/build/docs.sh: builds the library's reference in build/docs, from the library's comments and Sources/Causeway/Causeway.docc.
# Warnings are errors, such as a broken link, or a symbol without a topic. The script needs only the Swift toolchain.
set -euo pipefail
cd "$(dirname "$0")/../.."
rm -rf build/docs
mkdir -p build/docs/symbols build/docs/module
# Compiles a module from the sources that Package.swift lists for it in a normal build, not in the firmware's.
module() { # NAME OPTION…
  local name=$1 sources
  shift
  sources=$(ls Sources/"$name"/*.swift | grep -v SHA256Nettle)
  # shellcheck disable=SC2086
  swiftc -swift-version 6 -parse-as-library -I build/docs/module -module-name "$name" \
    -emit-module -emit-module-path "build/docs/module/$name.swiftmodule" "$@" $sources
}
module Transfer
module TransferFiles
module Causeway -emit-symbol-graph -emit-symbol-graph-dir build/docs/symbols -symbol-graph-minimum-access-level public
docc=$(dirname "$(readlink -f "$(command -v swiftc)")")/docc
"$docc" convert Sources/Causeway/Causeway.docc --additional-symbol-graph-dir build/docs/symbols \
  --fallback-display-name Causeway --fallback-bundle-identifier causeway --warnings-as-errors --output-path build/docs/Causeway
echo "build/docs/Causeway: $(find build/docs/Causeway/data -name '*.json' | wc -l) pages"
