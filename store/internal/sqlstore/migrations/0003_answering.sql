-- What tells whose answer a request waits for, so that no list reads a document. Rows from before have none; their documents tell.
ALTER TABLE requests ADD COLUMN answering {{text}} NOT NULL DEFAULT '';
