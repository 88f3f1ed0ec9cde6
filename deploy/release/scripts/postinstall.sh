#!/bin/sh
set -e
# A first installation starts nothing, because the configuration comes first. An upgrade restarts a running server.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart gatehouse.service
fi
