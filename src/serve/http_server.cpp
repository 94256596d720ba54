#include "serve/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <thread>

#include "core/error.h"

namespace fathom::serve {
namespace {

constexpr const char* kAddress = "127.0.0.1";
/// More would only take cores from training.
constexpr std::size_t kThreads = 4;

Question question_of(const httplib::Request& request) {
  Question question{.method = request.method,
                    .path = request.path,
                    .host = request.get_header_value("Host"),
                    .fetch_site = request.get_header_value("Sec-Fetch-Site"),
                    .query = {}};
  for (const auto& [key, value] : request.params) question.query.emplace(key, value);
  return question;
}

void write_reply(const Reply& reply, httplib::Response& response) {
  response.status = reply.status;
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Content-Security-Policy", "frame-ancestors 'none'");
  if (reply.status == 405) response.set_header("Allow", "GET, HEAD");
  // As a stream of known length: a whole body would be compressed, which takes longer than
  // sending it on the same machine.
  const auto body = std::make_shared<const std::string>(reply.body);
  response.set_content_provider(body->size(), reply.type,
                                [body](std::size_t at, std::size_t count, httplib::DataSink& sink) {
                                  sink.write(body->data() + at, count);
                                  return true;
                                });
}

/// One listener per port: the library's own choice would let a second server share it.
void set_socket_options(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace

struct HttpServer::State {
  httplib::Server server;
  std::thread thread;
};

HttpServer::HttpServer(Site& site, int port) : state_(std::make_unique<State>()) {
  httplib::Server& server = state_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_socket_options(set_socket_options);
  server.set_pre_routing_handler(
      [&site](const httplib::Request& request, httplib::Response& response) {
        write_reply(site.answer(question_of(request)), response);
        return httplib::Server::HandlerResponse::Handled;
      });
  port_ = port == 0 ? server.bind_to_any_port(kAddress)
                    : (server.bind_to_port(kAddress, port) ? port : -1);
  if (port_ < 0) {
    throw ConfigError(fmt::format(
        "port {} is in use or not allowed; choose another with --port, or --port 0 for any", port));
  }
  state_->thread = std::thread([this] { state_->server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
}

HttpServer::~HttpServer() {
  stop();
}

std::string HttpServer::address() const {
  return fmt::format("http://{}:{}/", kAddress, port_);
}

void HttpServer::stop() {
  state_->server.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace fathom::serve
