#include "cli/keys_table.h"

#include "terminal/table.h"

namespace fathom {

void print_keys(Session& session, const std::vector<TableDescription>& tables) {
  for (const TableDescription& description : tables) {
    if (!description.name.empty()) session.out << "\n[" << description.name << "]\n";
    Table table({{"key"}, {"default"}, {"values"}, {"meaning"}});
    for (const KeyDescription& key : description.keys) {
      table.add_row({key.key, key.fallback, key.values, key.meaning});
    }
    session.out << session.terminal.plain(table.render(session.terminal));
  }
}

}  // namespace fathom
