#!/bin/sh
set -e
# The user that the unit runs as, and that owns the data folder.
if ! getent passwd gatehouse >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/gatehouse --no-create-home --shell /usr/sbin/nologin gatehouse
fi
