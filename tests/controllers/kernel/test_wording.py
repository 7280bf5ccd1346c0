from __future__ import annotations

from controllers.kernel.conditions import counted


def test_one_is_singular_and_all_else_is_plural() -> None:
    assert [counted(number, "Machine") for number in (0, 1, 2)] == ["0 Machines", "1 Machine", "2 Machines"]


def test_words_with_a_plural_of_their_own_get_it() -> None:
    assert counted(1, "Machine is left", "Machines are left") == "1 Machine is left"
    assert counted(2, "Machine is left", "Machines are left") == "2 Machines are left"
