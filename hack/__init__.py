"""Scripts for developers. Nothing at run time imports this package."""
