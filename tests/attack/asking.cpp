#include "attack/asking.h"

#include <algorithm>

#include "core/error.h"
#include "serve/site.h"

namespace fathom::attack {
namespace {

serve::PlanWords no_plan(const std::vector<std::string>&) {
  throw ConfigError("no plans here");
}

serve::Question question_of(const std::string& address) {
  const std::size_t mark = address.find('?'), equals = address.find('=');
  serve::Question question;
  question.path = address.substr(0, mark);
  question.host = "localhost";
  if (equals != std::string::npos) {
    question.query[address.substr(mark + 1, equals - mark - 1)] = address.substr(equals + 1);
  }
  return question;
}

int code_of(const serve::Question& question, const serve::Reply& reply) {
  if (reply.status == 200) return 0;
  const bool nameless = reply.body.starts_with("a file has unexpected contents");
  if (nameless || question.path == "/" || question.path == "/api/overview") return 70;
  return reply.status < 500 ? 2 : 3;
}

}  // namespace

int ask(const std::vector<std::string>& arguments, Session& session) {
  serve::Site site({.roots = {arguments.at(1)},
                    .parse_plan = no_plan,
                    .fit_command = {"/bin/false"},
                    .look_every = std::chrono::milliseconds(0)});
  int code = 0;
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const serve::Question question = question_of(arguments[i]);
    const serve::Reply reply = site.answer(question);
    code = std::max(code, code_of(question, reply));
    (reply.status == 200 ? session.out : session.err) << reply.body << "\n";
  }
  return code;
}

}  // namespace fathom::attack
