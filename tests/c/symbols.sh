#!/bin/sh
# symbols.sh NM LIBRARY HEADER: every symbol that the library exports begins with rpo_, and every
# function that the header declares is there. (Sanitizers and gcov add symbols of their own.)
names=$("$1" -D --defined-only "$2" | awk '{print $NF}' | sed 's/@.*//')
[ -n "$names" ] || { echo "no symbols in $2"; exit 1; }
foreign=$(printf '%s\n' "$names" | grep -v '^rpo_' | grep -v '^__asan\|^__odr_asan\|^__ubsan\|gcov\|^mangle_path')
[ -z "$foreign" ] || { echo "exported, but not rpo_: $foreign"; exit 1; }
for name in $(sed -n 's/^RPO_API .*[ *]\(rpo_[a-z_]*\)(.*/\1/p' "$3"); do
  printf '%s\n' "$names" | grep -qx "$name" || { echo "the library lacks $name"; exit 1; }
done
printf '%s symbols\n' "$(printf '%s\n' "$names" | wc -l)"
