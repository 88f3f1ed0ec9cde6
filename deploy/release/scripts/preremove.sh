#!/bin/sh
set -e
# deb says "remove", rpm the number of versions that stay: not on upgrades.
case "$1" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl disable --now gatehouse.service
  fi
  ;;
esac
