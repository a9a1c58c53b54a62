"""From words and notes to prompt ids: note values, vocabulary, tokenizer, checks."""
