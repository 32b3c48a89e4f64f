-- Rows that a decision rests on carry a code that only a holder of the key can make; see codes.go.
ALTER TABLE requests ADD COLUMN code {{blob}};
ALTER TABLE requests ADD COLUMN line_code {{blob}};
-- What tells whose answer a request waits for, so that no list reads a document. Rows from before have none; their documents tell.
ALTER TABLE requests ADD COLUMN answering {{text}} NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN version {{int}} NOT NULL DEFAULT 1;
ALTER TABLE grants ADD COLUMN code {{blob}};
ALTER TABLE memories ADD COLUMN code {{blob}};
ALTER TABLE trees ADD COLUMN code {{blob}};
-- The token that made this one, with which it ends.
ALTER TABLE tokens ADD COLUMN maker {{text}} NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN code {{blob}};
ALTER TABLE records ADD COLUMN code {{blob}};
ALTER TABLE kept ADD COLUMN code {{blob}};
ALTER TABLE deliveries ADD COLUMN code {{blob}};
-- An entry names the version that its transaction gave to the row that it tells of: the request or the grant that is its subject, or, with an empty
-- subject, what is frozen. 0 means that it changed no row.
ALTER TABLE entries ADD COLUMN version {{int}} NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN code {{blob}};
DROP INDEX entries_subject;
CREATE INDEX entries_subject ON entries (subject, tenant, version);

-- All freezes in force of a tenant are one row, so that a part of them can't be taken away.
CREATE TABLE frozen (
  tenant  {{text}} NOT NULL PRIMARY KEY,
  version {{int}}  NOT NULL,
  body    {{text}} NOT NULL,
  code    {{blob}}
) {{strict}};

-- What the store is bound to: the last row counts.
CREATE TABLE periods (
  n          {{int}}  NOT NULL PRIMARY KEY,
  id         {{text}} NOT NULL,
  public_key {{text}} NOT NULL,
  why        {{text}} NOT NULL,
  at         {{int}}  NOT NULL,
  code       {{blob}} NOT NULL
) {{strict}};

-- Checkpoints that two keys signed, when the second took over.
CREATE TABLE handovers (
  tenant     {{text}} NOT NULL,
  size       {{int}}  NOT NULL,
  checkpoint {{blob}} NOT NULL,
  code       {{blob}},
  PRIMARY KEY (tenant, size)
) {{strict}};
