#!/bin/sh
# Run once, when PostgreSQL makes its data folder: a role for Gatehouse that is no
# superuser, so that row-level security binds it, and its database.
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$GATEHOUSE_PASSWORD" --username postgres --dbname postgres <<'SQL'
CREATE ROLE gatehouse LOGIN PASSWORD :'password';
CREATE DATABASE gatehouse OWNER gatehouse;
SQL
