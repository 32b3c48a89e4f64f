-- Who asks, and how large the document was when it was made: so that what one token has open can be told from the index
-- alone.
ALTER TABLE requests ADD COLUMN asker {{text}} NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN bytes {{int}} NOT NULL DEFAULT 0;
UPDATE requests SET bytes = octet_length(body) WHERE state = 'pending';
DROP INDEX requests_deadline;
CREATE INDEX requests_deadline ON requests (tenant, deadline, group_names, asker, bytes) WHERE state = 'pending';
