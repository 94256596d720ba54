// The site on a port of this machine, by cpp-httplib. It listens on 127.0.0.1 alone.
#pragma once

#include <memory>
#include <string>

#include "serve/site.h"

namespace fathom::serve {

class HttpServer {
 public:
  /// Port 0: any that is free. ConfigError in one line when the port is in use or not allowed.
  HttpServer(Site& site, int port);
  /// Ends as stop() does.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  std::string address() const;
  /// Answers what has come in and ends.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
  int port_ = 0;
};

}  // namespace fathom::serve
