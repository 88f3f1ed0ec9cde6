#!/bin/sh
set -e
# The user of the unit and owner of the data folder.
if ! getent passwd gatehouse >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/gatehouse --no-create-home --shell /usr/sbin/nologin gatehouse
fi
