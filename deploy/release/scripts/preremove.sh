#!/bin/sh
set -e
# Not on upgrades: deb passes "remove", rpm the number of remaining versions.
case "$1" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl disable --now gatehouse.service
  fi
  ;;
esac
