"""Why a promise was broken: the chain of causes."""
