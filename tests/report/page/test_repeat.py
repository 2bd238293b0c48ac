"""What is said about settings is enough to make the model again."""

from pmdc import GBNC
from pmdc.report.page.repeat import settings_of


def test_long_settings_are_complete():
    edges = [(f"class variable {i}", f"class variable {i + 1}") for i in range(60)]
    model = GBNC(experts=None, required_edges=edges)
    again = eval(settings_of(model), {"GBNC": GBNC})
    assert again.get_params() == model.get_params()


def test_addresses_in_memory_are_left_out():
    class Told:
        def __call__(self, progress):
            pass

    assert " at 0x" in repr(Told())
    assert " at 0x" not in settings_of(GBNC(callback=Told()))
