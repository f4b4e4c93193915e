#!/bin/sh
# docs/life_of_a_micro_batch.md numbers the steps of a micro-batch; the code carries `[life:n]`
# where each happens. Both must name the same steps, and every file the text points to for a step
# must carry that step's mark.
# usage: check_life_marks.sh SOURCE_ROOT
set -eu
cd "$1"
document=docs/life_of_a_micro_batch.md
status=0

in_text=$(grep -oE '\[life:[0-9]+\]' "$document" | sort -u)
in_code=$(git ls-files -co --exclude-standard -- runtime plugins | grep -E '\.(cpp|hpp)$' |
  xargs grep -ohE '\[life:[0-9]+\]' | sort -u)
if [ "$in_text" != "$in_code" ]; then
  printf 'life marks differ; in the text:\n%s\nin the code:\n%s\n' "$in_text" "$in_code" >&2
  status=1
fi

# Lines of the form `[life:3] path/to/file.cpp` list where a step happens.
# shellcheck disable=SC2016
places=$(grep -oE '^ *- `\[life:[0-9]+\]` `[^`]+`' "$document" | tr -d '`' | sed 's/^ *- //')
[ -n "$places" ] || { echo "$document lists no places" >&2; status=1; }
while read -r mark file; do
  [ -n "$mark" ] || continue
  if ! grep -qF "$mark" "$file" 2>/dev/null; then
    echo "$document: $file does not carry $mark" >&2
    status=1
  fi
done <<PLACES
$places
PLACES

# And no file carries a mark that the text does not list for it.
marked=$(git ls-files -co --exclude-standard -- runtime plugins | grep -E '\.(cpp|hpp)$' |
  xargs grep -oE '\[life:[0-9]+\]' /dev/null | sort -u | sed -E 's/^(.*):(\[life:[0-9]+\])$/\2 \1/')
while read -r mark file; do
  [ -n "$mark" ] || continue
  if ! printf '%s\n' "$places" | grep -qxF "$mark $file"; then
    echo "$file: carries $mark, which $document does not list" >&2
    status=1
  fi
done <<MARKED
$marked
MARKED

exit $status
