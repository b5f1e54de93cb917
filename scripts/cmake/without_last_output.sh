#!/bin/sh
# Runs a compiler's command after its output of last time is removed. Of precompiled headers the
# compiler would read the last ones in place of the headers, and ccache, which asks it what they hold,
# would not see that a generated one has changed.
before=""
for argument; do
  [ "$before" != -o ] || rm -f "$argument"
  before="$argument"
done
exec "$@"
