-- +goose Up
ALTER TABLE invocations ADD COLUMN approved_by TEXT NOT NULL DEFAULT '';
ALTER TABLE invocations ADD COLUMN address TEXT NOT NULL DEFAULT ''; -- of the client
ALTER TABLE invocations ADD COLUMN hub TEXT NOT NULL DEFAULT '';
ALTER TABLE invocations ADD COLUMN worth BIGINT NOT NULL DEFAULT 0; -- the order in which calls of one actor go: 0, 1 denied, 2 approved
UPDATE invocations SET worth = 1 WHERE class IN ('permission_denied', 'approval_rejected', 'policy_blocked', 'hook_blocked', 'sandbox_violation');
CREATE INDEX invocations_worth ON invocations (actor, worth, seq);
