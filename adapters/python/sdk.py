"""A skeleton: fill in what your SDK does, one operation after the other. Whatever is missing here is *unsupported*.

    stc run --client ./adapter --scenario C1-producer-watches

Parameters have the names of the protocol (docs/adapter-protocol.md), results are its results.
"""

import base64  # for identifiers
import itertools

from protocol import Failed, Unsupported, method, only, serve

numbers = itertools.count(1)
clients = {}
producers = {}


@method
def initialize(protocolVersion, suite):
    return {
        "protocolVersion": 1,
        "sdk": {"name": "my-sdk", "version": "0.0.0"},
        # What is not in this list is not asked for. The guide has all names.
        "capabilities": ["sync"],
    }


@method
def startScenario(scenario, seed):
    clients.clear()
    producers.clear()


@method
def endScenario():
    """Closes whatever is still open."""
    # for client in clients.values():
    #     client.close()
    clients.clear()
    producers.clear()


@method
def openClient(options):
    only(options, "serviceUrl")
    number = next(numbers)
    # clients[number] = my_sdk.Client(options["serviceUrl"])
    clients[number] = options["serviceUrl"]
    return number


@method
def createProducer(client, options):
    only(options, "topic", "name", "access", "schema")
    if options["access"] != "shared" or options["schema"] != "text":
        raise Unsupported("access modes and schemas other than the default")
    # number = next(numbers)
    # try:
    #     producers[number] = clients[client].create_producer(options["topic"])
    # except my_sdk.NotFound as e:
    #     raise Failed("NotFound", str(e), "byBlockingCall")
    # return number
    raise Unsupported("producers")


@method
def send(producer, message):
    only(message, "value", "key", "properties")
    # identifier = producers[producer].send(message["value"]["text"], key=message.get("key"))
    # return base64.b64encode(identifier.serialize()).decode()
    raise Unsupported("send")


@method
def closeProducer(producer):
    # producers.pop(producer).close()
    raise Unsupported("closing a producer")


@method
def closeClient(client):
    # clients.pop(client).close()
    clients.pop(client, None)


if __name__ == "__main__":
    serve()
