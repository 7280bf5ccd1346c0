"""The main job, live: declared, scaled, upgraded, rolled and deleted before the reader's eyes."""
