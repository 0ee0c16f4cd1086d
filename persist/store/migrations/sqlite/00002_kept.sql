-- +goose Up
ALTER TABLE invocations ADD COLUMN kept BIGINT NOT NULL DEFAULT 0; -- characters of its result that its caller did not get
