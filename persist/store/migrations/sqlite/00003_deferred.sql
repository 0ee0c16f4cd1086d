-- +goose Up
ALTER TABLE invocations ADD COLUMN deferred BIGINT NOT NULL DEFAULT 0; -- tokens of tools that the list of its caller deferred
