"""The claims of the ledger, one statement or one family of statements a file; `CLAIMS` is each file's list."""
