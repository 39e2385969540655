"""The paper's experiments: what was published, what the released code does, what is right."""
