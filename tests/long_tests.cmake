# Read by ctest after the tests that the programs list themselves: the long one among them begins
# early, too.
set_tests_properties(train.EndToEnd PROPERTIES COST 250)
