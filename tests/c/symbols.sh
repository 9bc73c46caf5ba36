#!/bin/sh
# symbols.sh NM LIBRARY: every symbol that the library exports begins with rpo_, and all of rpo.h's are
# there (their number is a lower bound: a name lost would break callers).
names=$("$1" -D --defined-only "$2" | awk '{print $NF}' | sed 's/@.*//')
[ -n "$names" ] || { echo "no symbols in $2"; exit 1; }
foreign=$(printf '%s\n' "$names" | grep -v '^rpo_' | grep -v '^__asan\|^__odr_asan\|^__ubsan')
if [ -n "$foreign" ]; then
  echo "exported, but not rpo_: $foreign"
  exit 1
fi
for name in $(sed -n 's/^RPO_API .*[ *]\(rpo_[a-z_]*\)(.*/\1/p' "$(dirname "$0")/../../include/rpo.h"); do
  printf '%s\n' "$names" | grep -qx "$name" || { echo "rpo.h declares $name, the library lacks it"; exit 1; }
done
printf '%s symbols\n' "$(printf '%s\n' "$names" | wc -l)"
