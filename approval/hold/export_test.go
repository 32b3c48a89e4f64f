package hold

// Batch is the number of ledger entries that are read at once.
const Batch = batch
