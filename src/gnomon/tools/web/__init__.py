"""What the pages share: how a page is put together, its drawing, its gestures and its style."""
