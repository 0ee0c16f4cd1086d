-- +goose Up
CREATE TABLE indexed (n BIGINT NOT NULL); -- one row: words of lines up to that one can be found
INSERT INTO indexed (n) SELECT COALESCE(MAX(n), 0) FROM lines;
