package stc.v5;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;

/**
 * The adapter of Pulsar's V5 Java client: does what the conformance suite says, and reports what came of it. The protocol
 * is described in docs/adapter-protocol.md.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] args) throws IOException {
        InputStream input = new FileInputStream(FileDescriptor.in);
        OutputStream output = new FileOutputStream(FileDescriptor.out);
        // Standard output belongs to the protocol, whatever a library prints.
        System.setOut(System.err);
        String connect = System.getenv("STC_CONNECT");
        if (connect != null && !connect.isEmpty()) {
            int colon = connect.lastIndexOf(':');
            Socket socket = new Socket(connect.substring(0, colon), Integer.parseInt(connect.substring(colon + 1)));
            socket.setTcpNoDelay(true);
            input = socket.getInputStream();
            output = socket.getOutputStream();
        }
        new Server(output).serve(input);
        // The threads of clients that are still open keep nothing alive that anybody wants.
        Runtime.getRuntime().halt(0);
    }
}
