"""What the example of docs/foreknowledge.md needs of torch, where torch is not installed."""
