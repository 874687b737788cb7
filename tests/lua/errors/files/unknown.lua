return {
  lr = 0.5, -- stpes = 3 is no entry
  -- stpes = 3
  ["stpes"] = 4,
}
