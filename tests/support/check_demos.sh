#!/bin/sh
# `./dev demo`: every demo that it names has a function and its job files, and a name that it does not
# know is refused with those it knows, before anything is installed or built.
# usage: check_demos.sh SOURCE_ROOT
set -eu
cd "$1"
fail() {
  echo "demos: $*" >&2
  exit 1
}

code=0
answer=$(./dev demo no_such_demo 2>&1) || code=$?
[ "$code" -eq 2 ] || fail "an unknown demo ends with $code: $answer"
case $answer in
  "dev: no demo 'no_such_demo'; there are: "*) ;;
  *) fail "an unknown demo is answered with: $answer" ;;
esac
names=${answer#*there are: }
[ -n "$names" ] || fail "there are none"
for name in $names; do
  body=$(sed -n "/^demo_$name() {/,/^}/p" dev)
  [ -n "$body" ] || fail "$name has no function"
  jobs=$(printf '%s\n' "$body" | sed -n 's/^ *run_job \([a-z0-9_]*\).*/\1/p')
  [ -n "$jobs" ] || fail "$name runs no job"
  for job in $jobs; do
    [ -f "apps/configs/$job.textproto" ] || fail "$name runs $job, which is not there"
  done
  ./dev help | grep -qE "^ +(demo .*)?$name( |\$)" || fail "./dev help does not tell of $name"
done
