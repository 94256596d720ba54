// fathom serve: what it refuses before it serves. Pages are tested in tests/serve and web/test.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/run_command.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

/// A listening socket on any free port of this machine.
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, plain, size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, plain, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  std::string port() const { return std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

TEST(ServeCommand, SaysInOneLineThatAPortIsTaken) {
  const ScratchFolder folder;
  const TakenPort taken;
  const CommandResult result =
      run_command({"serve", folder.path().string(), "--port", taken.port()});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "fathom: port " + taken.port() +
                " is in use or not allowed; choose another with --port, or --port 0 for "
                "any\n");
}

TEST(ServeCommand, RefusesFoldersThatAreNotThere) {
  const CommandResult result = run_command({"serve", "/no/such/folder"});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "fathom: /no/such/folder: there is no such folder\n");
  EXPECT_EQ(run_command({"serve", "--port", "70000"}).code, 2);
}

}  // namespace
}  // namespace fathom
