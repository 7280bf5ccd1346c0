"""All stories, in no particular order: each has a namespace of its own."""

from __future__ import annotations

from tests.differential.stories_ending import ENDING_STORIES
from tests.differential.stories_reading import READING_STORIES
from tests.differential.stories_recorded import RECORDED
from tests.differential.stories_writing import WRITING_STORIES

STORIES = (RECORDED, *READING_STORIES, *WRITING_STORIES, *ENDING_STORIES)
