#!/bin/sh
set -e
# The data folder and the user stay: removing the program must not delete decisions.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
