"""A model in the browser, and as a service: `pmdc explore`, `pmdc serve` and the method `explore` of a model.

Both speak the same JSON. `Interface` answers the requests, `application` makes an ASGI application of it.
"""
