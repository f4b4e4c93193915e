#!/bin/sh
# The direction of dependencies, checked on the sources: apps -> plugins -> runtime.
# usage: check_layers.sh SOURCE_ROOT
set -eu
cd "$1"
status=0

# forbid WHAT PATTERN PATHS...: prints each line that matches and fails.
forbid() {
  what=$1
  pattern=$2
  shift 2
  found=$(git ls-files -co --exclude-standard -- "$@" | grep -E '\.(cpp|hpp|proto)$' |
    xargs -r grep -nE "$pattern" /dev/null || true)
  if [ -n "$found" ]; then
    printf 'layering: %s\n%s\n' "$what" "$found" >&2
    status=1
  fi
}

torch='#include *[<"](torch|ATen|c10)/|\b(torch|at|c10)::'
forbid "LibTorch outside plugins/*/libtorch/" "$torch" \
  runtime apps 'plugins/*/core' 'plugins/*/actors' 'plugins/*/data' 'plugins/*/fake' \
  'plugins/*/include' plugins/netprobe tests/unit/core tests/unit/config tests/unit/plugin \
  tests/unit/actor tests/unit/transport tests/unit/app tests/unit/model_parallel \
  tests/simulation tests/support
forbid "CAF inside a core/ folder" '#include *[<"]caf/|\bcaf::' 'runtime/src/core' 'plugins/*/core'
forbid "the runtime names a plugin" 'model_parallel|netprobe|troupe::mp\b' runtime
forbid "netprobe includes model_parallel" 'model_parallel|troupe::mp\b' plugins/netprobe
forbid "model_parallel includes netprobe" 'netprobe' plugins/model_parallel
forbid "a plugin includes runtime internals" \
  '#include *"(core|config|plugin|actor|transport|app)/' plugins/netprobe
forbid "a header includes all of CAF, Boost.Test or LibTorch" \
  '#include *[<"](caf/all\.hpp|torch/torch\.h|torch/nn|boost/test/included)' runtime plugins apps tests

# The folders of the runtime: each includes itself and what its row in docs/architecture.md names.
folders='core config plugin transport actor app'
for folder in $folders; do
  allowed=$(grep -F "| \`runtime/src/$folder\` |" docs/architecture.md | cut -d '|' -f 4)
  forbidden=
  for other in $folders; do
    if [ "$other" = "$folder" ] || printf '%s' "$allowed" | grep -qw "$other"; then continue; fi
    forbidden="$forbidden|$other"
  done
  forbid "runtime/src/$folder may not use this, says docs/architecture.md" \
    "#include *\"(${forbidden#|})/" "runtime/src/$folder"
done

exit $status
