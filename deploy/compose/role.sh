#!/bin/sh
# Runs once, when PostgreSQL creates its data folder. It creates Gatehouse's database and
# a role that is not a superuser, so that row-level security applies to it.
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$GATEHOUSE_PASSWORD" --username postgres --dbname postgres <<'SQL'
CREATE ROLE gatehouse LOGIN PASSWORD :'password';
CREATE DATABASE gatehouse OWNER gatehouse;
SQL
