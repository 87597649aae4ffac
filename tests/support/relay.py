"""A relay between a client and a server on loopback, which can hold back responses.

    relay = Relay(server.port)
    relay.holds = True         # from now on, responses wait in the relay
    relay.holds = False        # passes them on
"""

import socket
import threading
import time


class Relay:
    def __init__(self, to):
        self.to, self.holds, self.connections = to, False, 0
        self._open = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.to))
            self._open += [client, server]
            kept = []
            for task in ((self._pass, client, server.sendall), (self._pass, server, kept.append),
                         (self._give, kept, client)):
                threading.Thread(target=task[0], args=task[1:], daemon=True).start()

    @staticmethod
    def _pass(from_, take):
        try:
            while data := from_.recv(65536):
                take(data)
        except OSError:
            pass
        if take.__name__ == "append":
            take(b"")

    def _give(self, kept, to):
        try:
            while True:
                if self.holds or not kept:
                    time.sleep(0.001)
                elif data := kept.pop(0):
                    to.sendall(data)
                else:
                    to.close()
                    return
        except OSError:
            pass
