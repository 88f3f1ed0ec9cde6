#!/bin/sh
set -e
# A first installation starts nothing: the configuration comes first. An upgrade restarts what runs.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart gatehouse.service
fi
