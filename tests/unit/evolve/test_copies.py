from __future__ import annotations

from outerloop_hpc.evolve.work import Copy, copies_of


def test_a_copy_of_a_folder_is_one_of_each_file_in_it_and_of_no_neighbour() -> None:
    copies = (Copy(source="src", to="a"), Copy(source="src", to="b/c"), Copy(source="src/x.py", to="x.py"))
    assert copies_of("src/x.py", copies) == ("a/x.py", "b/c/x.py", "x.py")
    assert copies_of("srcs/x.py", copies) == ()
