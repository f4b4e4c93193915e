#!/bin/sh
# The direction of dependencies, checked on the sources: apps -> plugins -> runtime.
# usage: check_layers.sh SOURCE_ROOT
set -eu
cd "$1"
status=0

# Everything is checked unless a rule takes it out, so that a new folder is not forgotten.
sources=$(git ls-files -co --exclude-standard -- '*.cpp' '*.hpp' '*.proto')
[ -n "$sources" ] || {
  echo "layering: git lists no sources in $1" >&2
  exit 1
}

# forbid WHAT PATTERN WHERE [EXCEPT]: prints each line that matches and fails. WHERE and EXCEPT are
# extended regular expressions of paths.
forbid() {
  what=$1
  pattern=$2
  paths=$(printf '%s\n' "$sources" | grep -E "$3" | grep -vE "${4:-^$}" || true)
  [ -n "$paths" ] || {
    echo "layering: no sources to check for '$what'" >&2
    status=1
    return 0
  }
  found=$(printf '%s\n' "$paths" | xargs grep -nE "$pattern" /dev/null || true)
  if [ -n "$found" ]; then
    printf 'layering: %s\n%s\n' "$what" "$found" >&2
    status=1
  fi
}

# The tests of the LibTorch executor, and those that train with it, may look behind it. Layers are
# written against one public header, also outside.
libtorch='(^|/)libtorch/|^cmake/pch/libtorch\.hpp$|^tests/bench/'
libtorch="$libtorch|^plugins/model_parallel/include/troupe/model_parallel/layer\.hpp$"
libtorch="$libtorch|^apps/examples/layer_library/"
forbid "LibTorch outside a libtorch/ folder" \
  '#include *[<"](torch|ATen|c10)/|\b(torch|at|c10)::' . "$libtorch"
forbid "CAF inside a core/ folder" '#include *[<"]caf/|\bcaf::' '(^|/)core/' '^tests/'
forbid "the runtime names a plugin" 'model_parallel|netprobe|troupe::mp\b' '^runtime/'
forbid "a plugin names another" 'model_parallel|troupe::mp\b' '^plugins/netprobe/'
forbid "a plugin names another" 'netprobe' '^plugins/model_parallel/'
# A quoted include of a plugin is relative to the plugin, which has some folders of the same names:
# an internal header of the runtime is one that the runtime has and the plugin has not.
internals=$(printf '%s\n' "$sources" | sed -n 's|^runtime/src/\(.*\.hpp\)$|\1|p')
for plugin in $(printf '%s\n' "$sources" | sed -n 's|^plugins/\([^/]*\)/.*|\1|p' | sort -u); do
  forbidden=$(for header in $internals; do
    [ -e "plugins/$plugin/$header" ] || echo "#include \"$header\""
  done)
  found=$(printf '%s\n' "$sources" | grep "^plugins/$plugin/" |
    xargs grep -nF "$forbidden" /dev/null || true)
  if [ -n "$found" ]; then
    printf 'layering: plugin %s includes runtime internals\n%s\n' "$plugin" "$found" >&2
    status=1
  fi
done
forbid "a header includes all of CAF, Boost.Test or LibTorch" \
  '#include *[<"](caf/all\.hpp|torch/torch\.h|torch/nn|boost/test/included)' .

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
