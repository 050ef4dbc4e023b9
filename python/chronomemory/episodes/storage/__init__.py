"""How episodes, facts and the books about rules stand in the log, one file a kind."""
