# Read by ctest after the tests that the programs list themselves: the long ones among them begin
# early, too.
set_tests_properties(fits.SurfaceFit lab.Lab/CommittedVerdict model.Family/Members train.EndToEnd
  PROPERTIES COST 150)
