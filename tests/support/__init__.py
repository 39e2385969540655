"""What the tests share and is no test: data, oracles, hostile inputs, fault injection, a browser."""
