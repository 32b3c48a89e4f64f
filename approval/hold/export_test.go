package hold

// Batch is how many entries of the ledger are read at once.
const Batch = batch
