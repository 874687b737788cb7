return {
  lr = "0.1",
}
